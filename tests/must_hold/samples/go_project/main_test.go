package main

import "testing"

func TestDoubled(t *testing.T) {
	if doubled(4) != 8 {
		t.Fatal("not doubled")
	}
}
