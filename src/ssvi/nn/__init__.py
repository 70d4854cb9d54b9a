"""What a layer is: sparse posteriors, Bayesian layers, gates, and the ways to and from them."""
