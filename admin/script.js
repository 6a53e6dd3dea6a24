// The administration page: first administrator, login, the plugins; uploads one, shows what it asks for, installs it.
const element = id => document.getElementById(id);
// The token of the setup link stands behind #, which browsers do not send; it is taken out of the address at once.
let token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
if (token !== '') history.replaceState(null, '', location.pathname);
let uploaded = null;

// Shows the server that a request comes from this page, and not from a page of a plugin; a login brings a new one.
let proof = document.querySelector('meta[name=page-proof]').content;
let password = '';
let watching;

async function api(method, path, body) {
  const isForm = body instanceof FormData;
  const response = await fetch(`/api/admin${path}`, {
    method,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(proof === '' ? {} : { 'x-page-proof': proof }),
      ...(body && !isForm ? { 'content-type': 'application/json' } : {}),
    },
    body: isForm ? body : body && JSON.stringify(body),
  });
  const answer = response.status === 204 ? {} : await response.json();
  if (response.ok) {
    if (answer.page_proof !== undefined) proof = answer.page_proof;
    return answer;
  }
  if (answer.code === 'password_confirmation_required' && answer.confirm?.method === 'GET') {
    if (confirm('This action wants you to log in at the identity provider again. Go there now?')) {
      location.href = `${answer.confirm.path}&return_to=${encodeURIComponent(location.pathname)}`;
      return await new Promise(() => {});
    }
  } else if (answer.code === 'password_confirmation_required') {
    const again = prompt('This action wants your password again:');
    if (again !== null) {
      await api('POST', '/auth/confirm', { password: again });
      return await api(method, path, body);
    }
  }
  // Opening something to callers without a login is confirmed in a dialog that shows the URLs.
  if (answer.code === 'confirmation_required' && confirm(publicText(answer)))
    return await api(method, path, { ...body, accept_public: true });
  const places = (answer.errors ?? []).map(e => `${e.pointer} ${e.message}`).join('\n');
  throw new Error(places || answer.detail || `HTTP ${response.status}`);
}

/** The question that names what would be open to every caller. */
function publicText({ becomes_public }) {
  const urls = becomes_public.map(p => `${p.methods.join(', ')} ${location.origin}${p.url}`);
  return `Every caller, without a login, may then call:\n\n${urls.join('\n')}\n\nOpen it to every caller?`;
}

/** Every row of a list, page by page. */
async function all(path) {
  const rows = [];
  for (let cursor = ''; ; ) {
    const { items, next_cursor } = await api('GET', `${path}?limit=200${cursor}`);
    rows.push(...items);
    if (next_cursor === null) return rows;
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`;
  }
}

/** Shows what this caller may see: the setup token's form, the login, the change of a temporary password, or the plugins. */
async function start() {
  clearTimeout(watching);
  const { admin, authenticated, idp, page_proof_required, setup_mode } = await api('GET', '/auth/check');
  if (page_proof_required) {
    // The administrator has logged in from another window since: a reloaded page gets the new proof.
    if (performance.getEntriesByType('navigation')[0]?.type !== 'reload') return location.reload();
    throw new Error('This browser does not protect this page: open it over https, or as http://localhost.');
  }
  const needsToken = setup_mode && token === '';
  const mustChange = admin?.must_change_password === true;
  element('token-form').hidden = !needsToken;
  element('login').hidden = authenticated;
  element('idp').hidden = authenticated || !idp;
  element('change').hidden = !mustChange;
  if (!mustChange) password = '';
  element('first').hidden = !setup_mode;
  element('who').hidden = admin === undefined;
  element('who').firstElementChild.textContent = admin?.email ?? '';
  element('plugins').hidden = true;
  element('admins').hidden = setup_mode;
  if (!authenticated || needsToken || mustChange) return;
  await show();
  if (!setup_mode) await showAdmins();
}

/** A row of plain text cells. */
function rowOf(texts) {
  const row = document.createElement('tr');
  for (const text of texts) row.appendChild(document.createElement('td')).textContent = text;
  return row;
}

/** What became of the mail with a temporary password. */
function mailText({ mail, must_change_password, temporary_until }) {
  if (!must_change_password) return '';
  if (mail === null) return `until ${temporary_until}`;
  if (mail.state === 'sent') return `mail sent, valid until ${temporary_until}`;
  return `mail ${mail.state}${mail.error === null ? '' : `: ${mail.error}`}`;
}

async function showAdmins() {
  clearTimeout(watching);
  const items = await all('/admins');
  const rows = items.map(a => {
    const row = rowOf([a.global_user_id, a.display_name, a.email, mailText(a), '']);
    const remove = row.lastElementChild.appendChild(document.createElement('button'));
    remove.type = 'button';
    remove.textContent = 'Remove';
    remove.addEventListener(
      'click',
      attempt(async () => {
        if (!confirm(`Remove ${a.email} from the administrators?`)) return;
        await api('DELETE', `/admins/${a.global_user_id}`);
        await start();
      }),
    );
    return row;
  });
  element('admin-table').tBodies[0].replaceChildren(...rows);
  // A mail that is on its way is looked after, quietly: messages stay.
  if (items.some(a => a.mail?.state === 'pending')) watching = setTimeout(() => showAdmins().catch(() => {}), 1000);
}

async function show() {
  const items = await all('/plugins');
  const rows = await Promise.all(
    items.map(async p => {
      const { triggers } = await api('GET', `/plugins/${encodeURIComponent(p.id)}`);
      const row = document.createElement('tr');
      const access = triggers
        .map(t => `${t.name} ${(t.methods ?? []).join('/')} ${t.path ?? ''}: ${t.effective_access ?? t.type}`)
        .join('\n');
      for (const text of [p.id, p.name ?? '', p.version ?? '', p.state, access]) {
        const cell = row.appendChild(document.createElement('td'));
        cell.style.whiteSpace = 'pre-line';
        cell.textContent = text;
      }
      return row;
    }),
  );
  element('plugin-table').tBodies[0].replaceChildren(...rows);
  element('plugins').hidden = false;
}

const attempt = work => async event => {
  event?.preventDefault();
  element('message').textContent = '';
  try {
    await work();
  } catch (error) {
    element('message').textContent = error.message;
  }
};

element('token-form').addEventListener(
  'submit',
  attempt(async () => {
    token = element('token').value.trim();
    await start();
  }),
);

element('login').addEventListener(
  'submit',
  attempt(async () => {
    password = element('password').value;
    await api('POST', '/auth/login', { email: element('email').value, password });
    element('password').value = '';
    await start();
  }),
);

element('change').addEventListener(
  'submit',
  attempt(async () => {
    const current = password || prompt('Your current password:');
    await api('PUT', '/auth/password', { current_password: current, new_password: element('new-password').value });
    password = '';
    element('new-password').value = '';
    await start();
  }),
);

element('setup').addEventListener(
  'submit',
  attempt(async () => {
    await api('POST', '/auth/setup', {
      email: element('first-email').value,
      password: element('first-password').value,
    });
    token = '';
    element('first-password').value = '';
    await start();
  }),
);

element('logout').addEventListener(
  'click',
  attempt(async () => {
    await api('POST', '/auth/logout');
    await start();
  }),
);

element('appoint-search').addEventListener(
  'input',
  attempt(async () => {
    const search = element('appoint-search').value.trim();
    const { items } = await api('GET', `/users?limit=10&search=${encodeURIComponent(search)}`);
    const options = items.map(u => {
      const option = document.createElement('option');
      option.value = u.id;
      option.textContent = `${u.display_name} ${u.external_id ?? ''}`;
      return option;
    });
    element('users').replaceChildren(...options);
  }),
);

element('appoint').addEventListener(
  'submit',
  attempt(async () => {
    const email = element('appoint-email').value;
    await api('POST', '/admins', { global_user_id: Number(element('appoint-search').value), email });
    element('appoint').reset();
    element('message').textContent = `a temporary password goes to ${email}`;
    await showAdmins();
  }),
);

element('upload').addEventListener(
  'submit',
  attempt(async () => {
    const form = new FormData();
    form.append('file', document.querySelector('input[type=file]').files[0]);
    uploaded = await api('POST', '/plugins/upload', form);
    const { id, name, version, permissions, new_permissions, requirements, triggers, access, findings } = uploaded;
    document.querySelector('pre').textContent = JSON.stringify(
      { id, name, version, permissions, new_permissions, requirements, triggers, access, findings },
      null,
      2,
    );
    element('suggested').hidden = !access.some(a => a.new && a.suggested !== null);
    element('accept-access').checked = false;
    element('review').hidden = false;
    await show();
  }),
);

element('install').addEventListener(
  'click',
  attempt(async () => {
    const config = JSON.parse(document.querySelector('textarea').value);
    const installed = await api('POST', `/plugins/${encodeURIComponent(uploaded.id)}/install`, {
      wasm_key: uploaded.wasm_key,
      config,
      accept_permissions: uploaded.new_permissions,
      accept_suggested_access: element('accept-access').checked,
    });
    element('review').hidden = true;
    const added = installed.added_triggers.map(t => `${t.name} (${t.effective_access ?? t.type})`).join(', ');
    element('message').textContent =
      `${uploaded.id} ${uploaded.version} is installed${added === '' ? '' : `; new triggers: ${added}`}`;
    await show();
  }),
);

attempt(start)();
