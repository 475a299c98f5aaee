"""Tokens by bucket, the simulated prompt cache, prices and modelled latency: all pure, nothing asks the network."""
