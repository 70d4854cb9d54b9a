"""What is done to a network: training objectives, updates of gamma, sampling, prediction."""
