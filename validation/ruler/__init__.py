"""The ruler measured: does a metric of faithfulness find the explanation that is known to be right?

- `cases`: models with planted truths, trained with masks, without, and adapted;
- `orders`: explanations as orders of words, among them the truth and worse ones by construction;
- `erasures`: what each model answers as words are erased, kept as small files;
- `rivals`: metrics of other papers on these answers, each written once;
- `recovery`: how often each metric finds the truth, with intervals;
- `page`: `docs/validation.md`, whose numbers all come from the files.
"""
