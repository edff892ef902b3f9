package main

import (
	"testing"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

func TestOpenAPIIsPrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "openapi").says(t, exitOK, string(httpapi.OpenAPI(buildVersion().Version)), "")
}
