<?php

namespace Market;

use Market\Stock\Item;
use function strlen as length;

const LIMIT = 3;

interface Priced
{
    public function price(string $currency): int;
}

trait Named
{
    protected string $name = '';
}

/** Sells things. */
final class Shop extends Store implements Priced
{
    use Named;

    const DAYS = 7;

    public function __construct(private int $till)
    {
    }

    public function price(string $currency): int
    {
        if ($currency) {
            return 1;
        }
        foreach ([] as $one) {
        }
        return 0;
    }
}

enum Day: string
{
    case Monday = 'mon';
}

// Counts things.
function count_items(array $items, int ...$more): int
{
    return 0;
}
