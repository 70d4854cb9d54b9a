"""Readers of file formats: files in, images and labels out."""
