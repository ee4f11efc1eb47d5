/* Heat map of words, for the report and the live page; the constants in HEAT come from Python. */
const heat = {
  /* Class of a score, given as a share of the text's strongest one. */
  tone(share, signed) {
    if (Math.abs(share) < HEAT.FAINT) return "";
    return signed ? (share > 0 ? "for" : "against") : "important";
  },

  /* Color an element by its share; an element without a color loses the one it had. */
  paint(element, share, signed) {
    const tone = heat.tone(share, signed);
    element.classList.add("heat");
    for (const name of ["for", "against", "important"]) element.classList.toggle(name, name === tone);
    element.style.setProperty("--share", Math.abs(share).toFixed(3));
    return tone;
  },

  /* Format a score as `format_score` in Python does: three significant digits, a sign if scores have one. */
  format(score, signed) {
    const [digits, exponent] = Math.abs(score).toExponential(HEAT.SCORE_DIGITS - 1).split("e");
    const power = Number(exponent);
    const size =
      power < -4 || power >= HEAT.SCORE_DIGITS
        ? `${Number(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`
        : String(Number(Math.abs(score).toPrecision(HEAT.SCORE_DIGITS)));
    return (score < 0 ? "-" : signed ? "+" : "") + size;
  },

  /* Numbers of the largest absolute scores, strongest first. */
  strongest(scores) {
    const numbers = scores.map((_, number) => number);
    return numbers.sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a])).slice(0, HEAT.STRONGEST_WORDS);
  },
};
