"""Readers: files in, images and labels out; `published` for the data sets that we know by name, `own` for all others."""
