"""Readers, one module for each file format: files in, images and labels out."""
