//go:build !linux

package doctor

func onOverlay(string) bool { return false }
