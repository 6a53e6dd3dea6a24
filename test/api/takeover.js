// What a page of a plugin tries to get at the administration. The test evaluates it inside such a page: it is one expression, an object.
({
  /** Each gives what it got. */
  attacks: {
    'fetch of the page': async () => (await fetch('/admin/')).status,
    'XHR of the page': () =>
      new Promise(resolve => {
        const x = new XMLHttpRequest();
        x.open('GET', '/admin/');
        x.responseType = 'document';
        x.onload = () => resolve([x.status, x.response?.querySelector('meta[name=page-proof]')?.content ?? null]);
        x.onerror = () => resolve('error');
        x.send();
      }),
    'read of the API': async () => (await (await fetch('/api/admin/plugins')).json()).code,
    'read of the user accounts': async () => (await (await fetch('/api/admin/users')).json()).code,
    'a new user': async () =>
      (
        await (
          await fetch('/api/admin/users', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"display_name":"Evil"}',
          })
        ).json()
      ).code,
    'a new token': async () =>
      (
        await (
          await fetch('/api/auth/tokens', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"name":"evil"}',
          })
        ).json()
      ).code,
    'a service worker for the origin': async () => {
      try {
        return (await navigator.serviceWorker.register('/plugins/evil/app/sw.js', { scope: '/' })).scope;
      } catch (error) {
        return error.name;
      }
    },
    'a service worker out of a trigger': async () => {
      try {
        return (await navigator.serviceWorker.register('/api/triggers/http/evil/run')).scope;
      } catch (error) {
        return error.name;
      }
    },
  },

  /** Windows and frames with one of our addresses, however they are opened. */
  windows: {
    popup: () => window.open('/admin/'),
    'popup that is blank at first': () => {
      const w = window.open('about:blank');
      if (w) w.location.href = '/admin/';
      return w;
    },
    'popup of the API': () => window.open('/api/admin/plugins'),
    'popup of the check': () => window.open('/api/admin/auth/check'),
    frame: () => {
      const f = document.createElement('iframe');
      f.src = '/admin/';
      document.body.append(f);
      return f.contentWindow;
    },
    'frame of the API': () => {
      const f = document.createElement('iframe');
      f.src = '/api/admin/plugins';
      document.body.append(f);
      return f.contentWindow;
    },
    object: () => {
      const o = document.createElement('object');
      o.data = '/admin/';
      o.type = 'text/html';
      document.body.append(o);
      return o.contentWindow;
    },
    'window of the same name': () => window.open('', 'adminwindow'),
    'form into a window': () => {
      const form = document.createElement('form');
      form.method = 'post';
      form.action = '/api/admin/users';
      form.enctype = 'text/plain';
      form.target = 'formwindow';
      const input = document.createElement('input');
      input.name = '{"display_name":"Evil","x":"';
      input.value = '"}';
      form.append(input);
      document.body.append(form);
      const w = window.open('about:blank', 'formwindow');
      form.submit();
      return w;
    },
  },

  attack(name) {
    return this.attacks[name]();
  },

  /** Opens all of them, and tells what the page can read in each when they stand still. */
  async readThrough() {
    const opened = Object.entries(this.windows).map(([name, open]) => [name, open()]);
    await new Promise(resolve => setTimeout(resolve, 2000));
    return opened.map(([name, view]) => {
      try {
        if (!view || view.closed) return [name, 'closed'];
        const { document: d } = view;
        const proof = d.querySelector('meta[name=page-proof]')?.content ?? '';
        return [name, `${proof} ${d.title} ${d.body?.innerText ?? ''}`];
      } catch (error) {
        return [name, error.name];
      }
    });
  },

  /** A page of a trigger has an origin of its own: what it may reach at all. */
  alone: {
    cookie: () => document.cookie,
    storage: () => localStorage.length,
    check: () => fetch('/api/admin/auth/check', { credentials: 'include' }),
    page: () => fetch('/admin/'),
    'service worker': () => navigator.serviceWorker.register('/api/triggers/http/evil/run'),
    'its own trigger': async () => (await fetch('/api/triggers/http/evil/run')).status,
  },

  async tryAlone(name) {
    try {
      return await this.alone[name]();
    } catch (error) {
      return error.name;
    }
  },
});
