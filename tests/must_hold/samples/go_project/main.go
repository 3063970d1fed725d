package main

import "fmt"

func doubled(number int) int { return number * 2 }

func main() { fmt.Println(doubled(21)) }
