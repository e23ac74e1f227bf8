package model

import (
	"context"

	"isthmus.dev/isthmus/federation"
)

// Problem is something that the hub read and does not use.
type Problem struct {
	Of federation.Problem
	// Named and Contributed find what it names.
	Named       func(context.Context) *ConfigObject
	Contributed func(context.Context) *Service
}

// ConfigObject is the object that it names, or nil.
func (p Problem) ConfigObject(ctx context.Context) *ConfigObject { return p.Named(ctx) }

// Service is the service that it names, or nil.
func (p Problem) Service(ctx context.Context) *Service { return p.Contributed(ctx) }

// Key orders problems by object.
func (p Problem) Key() string {
	return p.Of.Object + nul + p.Of.Field + nul + p.Of.Code + nul + p.Of.Message
}

// Code says which problem it is.
func (p Problem) Code() string { return p.Of.Code }

// DocURL is the documentation of the code.
func (p Problem) DocURL() *string { return findingDoc(p.Of.Code) }

// Object names what has the problem.
func (p Problem) Object() string { return p.Of.Object }

// Field is a path within the object, nil for the whole of it.
func (p Problem) Field() *string { return nonEmpty(p.Of.Field) }

// Message says what is wrong and what to do.
func (p Problem) Message() string { return p.Of.Message }
