// The sample plugin in workerd: the same module, a new instance per request, host functions in JavaScript.
import module from './greet.wasm';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const wanted = WebAssembly.Module.imports(module);

export default {
  fetch(request) {
    const url = new URL(request.url);
    const event = encoder.encode(
      JSON.stringify({
        kind: 'http',
        trigger: 'greet',
        http: {
          method: request.method,
          path: '/greet',
          query: Object.fromEntries(url.searchParams),
          headers: Object.fromEntries(request.headers),
          remote_addr: '127.0.0.1',
          auth: null,
          params: {},
        },
      }),
    );
    let memory;
    let answer = new Response('no answer', { status: 502 });
    const bytes = (pointer, length) => new Uint8Array(memory.buffer, pointer, length);
    const host = {
      input_len: () => event.length,
      input_read(_kind, pointer, length) {
        bytes(pointer, length).set(event.subarray(0, length));
        return event.length;
      },
      respond(status, headersAt, headersLength, bodyAt, bodyLength) {
        const headers = JSON.parse(decoder.decode(bytes(headersAt, headersLength)));
        answer = new Response(bytes(bodyAt, bodyLength).slice(), { status, headers });
        return 0;
      },
    };
    const imports = {};
    for (const { module: from, name } of wanted) {
      imports[from] ??= {};
      imports[from][name] = host[name] ?? (() => -5);
    }
    const { exports } = new WebAssembly.Instance(module, imports);
    memory = exports.memory;
    exports._initialize?.();
    exports.plugin_handle();
    return answer;
  },
};
