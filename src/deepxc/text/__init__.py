"""Text to tokens: bags, padded sequences, pretrained tokenizers, and vectors for tokens to start from."""
