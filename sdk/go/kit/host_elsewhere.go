//go:build !wasip1

package pluginhost

import "unsafe"

// outside says that a handler was called where there is no host. Functions that ask nothing of the host can be tested there.
func outside() int32 {
	panic("pluginhost: there is a host in the sandbox alone; test handlers with pluginhost/plugintest")
}

func inputLen(kind int32) int32                                   { return outside() }
func inputRead(kind int32, to unsafe.Pointer, length int32) int32 { return outside() }
func resultRead(to unsafe.Pointer, length int32) int32            { return outside() }
func bodyLen() int32                                              { return outside() }
func bodyRead(from int32, to unsafe.Pointer, length int32) int32  { return outside() }
func errorLen() int32                                             { return outside() }
func errorRead(to unsafe.Pointer, length int32) int32             { return outside() }
func hostOutput(at unsafe.Pointer, length int32) int32            { return outside() }
func hostRespond(status int32, headers unsafe.Pointer, headersLength int32, body unsafe.Pointer, bodyLength int32) int32 {
	return outside()
}
func hostReply(message unsafe.Pointer, length int32) int32         { return outside() }
func hostFail(text unsafe.Pointer, length int32) int32             { return outside() }
func hostLog(level int32, text unsafe.Pointer, length int32) int32 { return outside() }
func hostConfigGet(key unsafe.Pointer, length int32) int32         { return outside() }
func hostInfo() int32                                              { return outside() }
func hostKVGet(key unsafe.Pointer, length int32) int32             { return outside() }
func hostKVSet(key unsafe.Pointer, length int32, value unsafe.Pointer, valueLength int32, ttlSeconds int32) int32 {
	return outside()
}
func hostKVDelete(key unsafe.Pointer, length int32) int32 { return outside() }
func hostKVList(prefix unsafe.Pointer, prefixLength int32, after unsafe.Pointer, afterLength int32, limit int32) int32 {
	return outside()
}
func hostKVGetMany(keys unsafe.Pointer, length int32) int32 { return outside() }
func hostKVUpdate(key unsafe.Pointer, length int32, mode int32, expected unsafe.Pointer, expectedLength int32, value unsafe.Pointer, valueLength int32, ttlSeconds int32) int32 {
	return outside()
}
func hostKVIncrement(key unsafe.Pointer, length int32, delta int64, ttlSeconds int32) int32 {
	return outside()
}
func hostSQLOpen(name unsafe.Pointer, length int32) int32 { return outside() }
func hostSQLQuery(handle int32, statement unsafe.Pointer, length int32, values unsafe.Pointer, valuesLength int32, rowsMax int32) int32 {
	return outside()
}
func hostSQLFetch(cursor int32, rowsMax int32) int32 { return outside() }
func hostSQLExec(handle int32, statement unsafe.Pointer, length int32, values unsafe.Pointer, valuesLength int32) int32 {
	return outside()
}
func hostSQLBegin(handle int32) int32         { return outside() }
func hostSQLCommit(transaction int32) int32   { return outside() }
func hostSQLRollback(transaction int32) int32 { return outside() }
func hostSQLClose(handle int32) int32         { return outside() }
func hostHTTPRequest(order unsafe.Pointer, length int32, body unsafe.Pointer, bodyLength int32) int32 {
	return outside()
}
func hostNotifyUser(id int64, message unsafe.Pointer, length int32) int32 { return outside() }
func hostNotifyChat(id unsafe.Pointer, idLength int32, message unsafe.Pointer, length int32) int32 {
	return outside()
}
func hostNotifyStudents(filter unsafe.Pointer, filterLength int32, message unsafe.Pointer, length int32) int32 {
	return outside()
}
func hostFileMeta(id unsafe.Pointer, length int32) int32 { return outside() }
func hostFileURL(id unsafe.Pointer, length int32) int32  { return outside() }
func hostFileStore(order unsafe.Pointer, length int32, data unsafe.Pointer, dataLength int32) int32 {
	return outside()
}
func hostFileReadInto(id unsafe.Pointer, length int32, offset int64, to unsafe.Pointer, toLength int32) int32 {
	return outside()
}
func hostEventPublish(name unsafe.Pointer, nameLength int32, payload unsafe.Pointer, length int32) int32 {
	return outside()
}
func hostPluginCall(target unsafe.Pointer, targetLength int32, name unsafe.Pointer, nameLength int32, data unsafe.Pointer, length int32) int32 {
	return outside()
}
