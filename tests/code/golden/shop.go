package shop

import (
	"fmt"
	str "strings"
)

const Limit = 3

var (
	names  []string
	prices = map[string]int{}
)

// Shop sells things.
type Shop struct {
	*Store
	Name, Town string
	till       int
}

type Priced interface {
	Price() int
}

type Day int

// Open opens a shop.
func Open(name string, days ...Day) (*Shop, error) {
	if name == "" {
		return nil, fmt.Errorf("no name")
	}
	for range days {
	}
	return &Shop{Name: name}, nil
}

func (s *Shop) Total() int {
	switch s.till {
	case 1:
		return str.Count("a", "b")
	default:
		return s.till
	}
}

func (d Day) String() string { return "" }

func Map[T any](items []T) []T { return items }
