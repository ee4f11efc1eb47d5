"""Controls: models whose truth is known, because it was planted in their training texts.

- `planted`: texts and labels, with the words that decide each label;
- `models`: small encoders trained on them, with masks and in the wrong ways;
- `cache`: the logits of their erasures in `results/validation/controls`, from which all tables follow.
"""
