"""Recipes, runs, run folders and model files."""
