"""Metrics and searches on real classifiers of base size whose outputs for every set of words are known.

The data are those of "Normalized AOPC" (https://arxiv.org/abs/2408.08137): five BERT-base and RoBERTa-base
classifiers, short texts of SST-2 and Yelp, the logits for all sets of masked words, ten attributions,
published scores and exact limits. `python -m validation.naopc` writes `results/validation/naopc-*.csv`:

- `equal`: how many published numbers equal ours to 1e-6, and why the others do not; `named` lists the others;
- `search`: share of the exact optimum that each search reaches, and its evaluations;
- `scores`, `kendall`: how the attributions rank by our metrics and by theirs, and how far the rankings agree.

The authors explain class 1 of every text, also where the model predicts class 0. Their comprehensiveness is
the AOPC: the mean fall of the probability over all steps, from one masked word to all of them. Their
sufficiency is the same for the reversed order. Neither averages over the shares of ERASER.
"""
