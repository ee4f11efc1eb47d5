"""The live page: a text, its words as switches, what the model makes of it; over a documented JSON API."""
