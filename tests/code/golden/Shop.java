package org.example;

import java.util.List;
import static java.lang.Math.max;

/**
 * Sells things.
 */
@Deprecated
public class Shop extends Store implements Priced, Comparable<Shop> {
    private static final int LIMIT = 3;
    private String name, town;

    public Shop(String name) {
        this.name = name;
    }

    @Override
    public int compareTo(Shop other) {
        if (other == null) {
            return 1;
        }
        for (int i = 0; i < LIMIT; i++) {
        }
        return 0;
    }

    enum Day {
        MONDAY,
        TUESDAY
    }

    interface Priced {
        int price(String currency);
    }

    record Item(String name, int price) {
    }
}
