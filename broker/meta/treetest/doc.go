// Package treetest has the tests that every implementation of meta.Tree passes: what is above one works on the others.
package treetest
