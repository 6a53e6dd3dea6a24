//go:build pluginhost

package pluginhost

import _ "unsafe" // for go:linkname

// start: the runtime begins once, at the upload, and is remembered, because each execution seeds its random numbers again.
const start = "once"

// reseed draws new seeds for the runtime; plugin-host plugin build adds the function to it.
//
//go:linkname reseed runtime.pluginHostReseed
func reseed()
