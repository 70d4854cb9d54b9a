"""The parts of wire.py: what training in several processes sends over the wire, and what that means for many of them."""
