"""The common corruptions of images: `table` lists all 15, and each of their four families is a module.

The families are those of Hendrycks and Dietterich: `noise`, `blur`, `weather`, `digital`. What they share is in
`filters` and `textures`.
"""
