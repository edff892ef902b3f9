//go:build !failpoints

package database

import "database/sql/driver"

// watched is the connector itself: only the build for the fleet tests watches what goes to the driver (watch_on.go).
func watched(c driver.Connector) driver.Connector { return c }

// unwatched is the driver's connection.
func unwatched(raw any) any { return raw }
