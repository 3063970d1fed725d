import type { Item } from "./item";

export interface Priced<T> extends Named, Tagged {
  price: number;
  convert(to: string): T;
}

export enum Day {
  Monday,
  Tuesday = "tue",
}

export type Prices = Record<string, number>;

namespace Stock {
  export function count(items: Item[]): number {
    return items.length;
  }
}

@Injectable()
export abstract class Shop<T> extends Store implements Priced<T>, Named {
  private readonly till: number = 0;
  handler = (event: Event) => this.till;

  constructor(private name: string) {
    super();
  }

  abstract convert(to: string): T;

  /** The sum. */
  get total(): number {
    return this.till;
  }
}

export const open = async (name: string): Promise<void> => {
  while (name) break;
};

declare function legacy(name: string): void;
