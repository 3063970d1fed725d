/** Moves the focus along a list. */

import { useKeys } from "./keys";

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

/** j, k and the arrows move along the rows of a list, o opens one. Enter does what a link does. */
export function useListKeys(selector = ".row-link", enabled = true): void {
  const move = (step: 1 | -1) => () => focusNeighbour(selector, step);
  const open = () => document.activeElement instanceof HTMLElement && document.activeElement.matches(selector) && document.activeElement.click();
  useKeys({ j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1), o: open }, enabled);
}
