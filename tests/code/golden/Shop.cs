using System;
using System.Collections.Generic;

namespace Market
{
    /// <summary>Sells things.</summary>
    [Serializable]
    public class Shop : Store, IPriced
    {
        private const int Limit = 3;
        public string Name { get; set; }

        public Shop(string name)
        {
            Name = name;
        }

        public int Total(int day, params int[] prices)
        {
            foreach (var price in prices)
            {
                if (price > Limit) return price;
            }
            return 0;
        }
    }

    public interface IPriced
    {
        int Price(string currency);
    }

    public enum Day { Monday, Tuesday }

    public struct Point { public int X; }

    public record Item(string Name);

    public delegate void Handler(int code);
}
