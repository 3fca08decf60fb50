"""The four modules of DeepXML: protocols, and the parts that fill them."""
