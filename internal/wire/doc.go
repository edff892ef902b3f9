// Package wire has the objects of the HTTP API as they are in JSON. The daemon answers with them, and commands with -o json
// print the same ones. Times are RFC 3339 in UTC; what is not set is null.
package wire
