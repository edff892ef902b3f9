//go:build !linux

package doctor

func onOverlay(string) bool { return false }

func inMemory(string) bool { return false }
