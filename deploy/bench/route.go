package main

import (
	"context"
	"fmt"
)

func printRoute(_ context.Context, _ options) error { fmt.Println(); return nil }
