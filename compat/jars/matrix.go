package jars

import (
	"context"
	"path/filepath"
)

// Matrix compiles java/Matrix.java with the Era of a Kafka version, in the module's folder compat, and returns the class
// path that runs it. For 0.8.2.2 that has ScalaProducer and Steady as well.
func Matrix(ctx context.Context, compat, version string) (classPath string, err error) {
	files := []string{"Matrix.java", "Lines.java"}
	switch {
	case hasPrefix(version, "0.8."):
		files = append(files, "era/v08/Era.java", "era/v08/ScalaProducer.java", "era/v08/Steady.java")
	case hasPrefix(version, "0.9."):
		files = append(files, "Assigned.java", "era/v09/Era.java")
	case hasPrefix(version, "0.10."):
		files = append(files, "Assigned.java", "Spans.java", "era/v10/Era.java")
	default:
		files = append(files, "Assigned.java", "Spans.java", "era/v11/Era.java")
	}
	for i := range files {
		files[i] = filepath.Join(compat, "java", files[i])
	}
	return Tools(version).Compile(ctx, files...)
}
