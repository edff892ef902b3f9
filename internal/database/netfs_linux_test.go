package database

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The numbers are those of statfs(2).
func TestNetworkFileSystems(t *testing.T) {
	t.Parallel()
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "CIFS", 0x517b: "SMB", 0xfe534d42: "SMB2", 0x65735546: "FUSE", 0x01021997: "9p",
		0x00c36400: "Ceph", 0xef53: "", 0x01021994: "", 0x794c7630: "", 0x58465342: "", 0x9123683e: "",
	} {
		assert.Equal(t, want, networkMagic(magic), "%#x", magic)
	}
	name, err := networkFileSystem("/proc")
	require.NoError(t, err)
	assert.Empty(t, name)
	_, err = networkFileSystem("/does/not/exist")
	require.Error(t, err)
}
