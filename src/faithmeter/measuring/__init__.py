"""The measurement: texts are erased step by step, and the model's answers become a result."""
