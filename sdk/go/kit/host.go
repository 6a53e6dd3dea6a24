//go:build wasip1

package pluginhost

import "unsafe"

//go:wasmimport plugin_host input_len
func inputLen(kind int32) int32

//go:wasmimport plugin_host input_read
func inputRead(kind int32, to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host result_read
func resultRead(to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host body_len
func bodyLen() int32

//go:wasmimport plugin_host body_read
func bodyRead(from int32, to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host error_len
func errorLen() int32

//go:wasmimport plugin_host error_read
func errorRead(to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host output
func hostOutput(at unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host respond
func hostRespond(status int32, headers unsafe.Pointer, headersLength int32, body unsafe.Pointer, bodyLength int32) int32

//go:wasmimport plugin_host reply
func hostReply(message unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host fail
func hostFail(text unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host log
func hostLog(level int32, text unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host config_get
func hostConfigGet(key unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host host_info
func hostInfo() int32

//go:wasmimport plugin_host kv_get
func hostKVGet(key unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host kv_set
func hostKVSet(key unsafe.Pointer, length int32, value unsafe.Pointer, valueLength int32, ttlSeconds int32) int32

//go:wasmimport plugin_host kv_delete
func hostKVDelete(key unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host kv_list
func hostKVList(prefix unsafe.Pointer, prefixLength int32, after unsafe.Pointer, afterLength int32, limit int32) int32

//go:wasmimport plugin_host kv_get_many
func hostKVGetMany(keys unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host kv_update
func hostKVUpdate(key unsafe.Pointer, length int32, mode int32, expected unsafe.Pointer, expectedLength int32, value unsafe.Pointer, valueLength int32, ttlSeconds int32) int32

//go:wasmimport plugin_host kv_increment
func hostKVIncrement(key unsafe.Pointer, length int32, delta int64, ttlSeconds int32) int32

//go:wasmimport plugin_host sql_open
func hostSQLOpen(name unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host sql_query
func hostSQLQuery(handle int32, statement unsafe.Pointer, length int32, values unsafe.Pointer, valuesLength int32, rowsMax int32) int32

//go:wasmimport plugin_host sql_fetch
func hostSQLFetch(cursor int32, rowsMax int32) int32

//go:wasmimport plugin_host sql_exec
func hostSQLExec(handle int32, statement unsafe.Pointer, length int32, values unsafe.Pointer, valuesLength int32) int32

//go:wasmimport plugin_host sql_begin
func hostSQLBegin(handle int32) int32

//go:wasmimport plugin_host sql_commit
func hostSQLCommit(transaction int32) int32

//go:wasmimport plugin_host sql_rollback
func hostSQLRollback(transaction int32) int32

//go:wasmimport plugin_host sql_close
func hostSQLClose(handle int32) int32

//go:wasmimport plugin_host http_request
func hostHTTPRequest(order unsafe.Pointer, length int32, body unsafe.Pointer, bodyLength int32) int32

//go:wasmimport plugin_host notify_user
func hostNotifyUser(id int64, message unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host notify_chat
func hostNotifyChat(id unsafe.Pointer, idLength int32, message unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host notify_students
func hostNotifyStudents(filter unsafe.Pointer, filterLength int32, message unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host file_meta
func hostFileMeta(id unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host file_url
func hostFileURL(id unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host file_store
func hostFileStore(order unsafe.Pointer, length int32, data unsafe.Pointer, dataLength int32) int32

//go:wasmimport plugin_host file_read_into
func hostFileReadInto(id unsafe.Pointer, length int32, offset int64, to unsafe.Pointer, toLength int32) int32

//go:wasmimport plugin_host event_publish
func hostEventPublish(name unsafe.Pointer, nameLength int32, payload unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host plugin_call
func hostPluginCall(target unsafe.Pointer, targetLength int32, name unsafe.Pointer, nameLength int32, data unsafe.Pointer, length int32) int32
