module recipes

go 1.24

require pluginhost v0.0.0

replace pluginhost => ./kit
