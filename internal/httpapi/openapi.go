package httpapi

import (
	"bytes"
	_ "embed" // the document
	"encoding/json"
	"net/http"
)

//go:embed openapi.json
var document []byte

// OpenAPI is the description of the API as an OpenAPI 3.1 document in JSON, with the program's version; "" is "dev".
func OpenAPI(version string) []byte {
	if version == "" {
		version = "dev"
	}
	quoted, _ := json.Marshal(version) // a string always can
	return bytes.Replace(document, []byte(`"version": "dev"`), append([]byte(`"version": `), quoted...), 1)
}

func openAPI(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(OpenAPI(c.o.Version)) // the client went away, and there is nobody to tell
	return nil
}
