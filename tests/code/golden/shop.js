import fs, { join as joinPath } from "fs";
import * as path from "path";
import "./side-effect.js";

const LIMIT = 3;
export let names = [];

/** Sells things. */
export class Shop extends base.Store {
  #till = 0;

  constructor(name) {
    super(name);
  }

  static async open(name, { day = "Monday" } = {}, ...rest) {
    if (name) return new Shop(name);
    for (const one of rest) console.log(one);
  }

  get total() {
    return this.#till;
  }
}

// Counts things.
// All of them.
function count(items) {
  return items.length;
}

export const double = (x) => x * 2;

Shop.prototype.close = function (hour) {
  switch (hour) {
    case 1:
      return true;
    default:
      return false;
  }
};

module.exports = { list: () => [] };
