"""Small plots as SVG, for reports and notebooks."""
