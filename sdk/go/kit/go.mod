module pluginhost

go 1.24
