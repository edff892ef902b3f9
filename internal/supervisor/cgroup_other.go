//go:build !linux

package supervisor

import (
	"errors"
	"os"
	"syscall"

	"go.uber.org/zap"
)

var errNoCgroups = errors.New("this platform has no cgroups")

// cgroupTree does not exist here; makeHome says so and nothing else makes one.
type cgroupTree struct{ dir string }

func (cgroupTree) signal(...syscall.Signal) {}
func (cgroupTree) kill()                    {}
func (cgroupTree) stun(int)                 {}
func (cgroupTree) alive() bool              { return false }
func (cgroupTree) remove() error            { return nil }

func makeHome(string) (string, error) { return "", errNoCgroups }
func removeHome(string)               {}
func sweep(*zap.Logger)               {}

func newCgroup(string, uint64, string) (cgroupTree, *os.File, error) {
	return cgroupTree{}, nil, errNoCgroups
}
