/** Moves the focus along a list. */

/** Focuses the next or previous element of a selector, seen from the focus. */
export function focusNeighbour(selector: string, step: 1 | -1): void {
  const elements = Array.from(document.querySelectorAll<HTMLElement>(selector));
  const focus = document.activeElement;
  const inside = elements.findIndex((one) => one === focus || (one.parentElement?.contains(focus) === true && one.tagName === "SUMMARY"));
  const place = inside < 0 ? (step > 0 ? 0 : elements.length - 1) : inside + step;
  const target = elements[Math.min(elements.length - 1, Math.max(0, place))];
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
}
