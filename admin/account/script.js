// The page on which a user makes and revokes tokens, and ends sessions.
const language = navigator.language.startsWith('ru') ? 'ru' : 'en';
const TEXTS = {
  ru: { revoke: 'Отозвать', end: 'Завершить', current: 'этот сеанс', never: 'никогда' },
  en: { revoke: 'Revoke', end: 'End', current: 'this session', never: 'never' },
}[language];
const element = id => document.getElementById(id);
document.documentElement.lang = language;
if (language === 'en') for (const e of document.querySelectorAll('[data-en]')) e.textContent = e.dataset.en;
// Shows the server that a request comes from this page, and not from a page of a plugin.
const proof = document.querySelector('meta[name=page-proof]').content;

async function api(method, path, body) {
  const response = await fetch(`/api/auth${path}`, {
    method,
    headers: { 'x-page-proof': proof, ...(body ? { 'content-type': 'application/json' } : {}) },
    body: body && JSON.stringify(body),
  });
  if (response.status === 401) {
    element('login').hidden = false;
    element('account').hidden = true;
  }
  const answer = response.status === 204 ? {} : await response.json();
  // The user has logged in elsewhere meanwhile: a new page has the new proof.
  if (answer.code === 'page_proof_required' && performance.getEntriesByType('navigation')[0]?.type !== 'reload')
    location.reload();
  if (!response.ok) throw new Error(answer.detail ?? `HTTP ${response.status}`);
  return answer;
}

async function all(path) {
  const rows = [];
  for (let cursor = ''; ; ) {
    const { items, next_cursor } = await api('GET', `${path}?limit=200${cursor}`);
    rows.push(...items);
    if (next_cursor === null) return rows;
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`;
  }
}

const attempt = work => async event => {
  event?.preventDefault();
  element('message').textContent = '';
  try {
    await work();
  } catch (error) {
    if (element('login').hidden) element('message').textContent = error.message;
  }
};

const time = text => (text === null ? TEXTS.never : new Date(text).toLocaleString(language));

/** A row of plain text cells, with a button that does something at its end. */
function rowOf(texts, label, work) {
  const row = document.createElement('tr');
  for (const text of texts) row.appendChild(document.createElement('td')).textContent = text;
  const cell = row.appendChild(document.createElement('td'));
  if (work === null) cell.textContent = label;
  else {
    const button = cell.appendChild(document.createElement('button'));
    button.type = 'button';
    button.textContent = label;
    button.addEventListener('click', attempt(work));
  }
  return row;
}

async function show() {
  const [tokens, sessions] = await Promise.all([all('/tokens'), all('/sessions')]);
  element('account').hidden = false;
  element('login').hidden = true;
  element('tokens').tBodies[0].replaceChildren(
    ...tokens.map(k =>
      rowOf([k.name, time(k.created_at), time(k.last_used_at)], TEXTS.revoke, async () => {
        await api('DELETE', `/tokens/${k.id}`);
        await show();
      }),
    ),
  );
  element('sessions').tBodies[0].replaceChildren(
    ...sessions.map(s => {
      const end = async () => {
        await api('DELETE', `/sessions/${s.id}`);
        await show();
      };
      const texts = [time(s.created_at), time(s.last_used_at), s.address, s.user_agent];
      return s.current ? rowOf(texts, TEXTS.current, null) : rowOf(texts, TEXTS.end, end);
    }),
  );
}

element('make').addEventListener(
  'submit',
  attempt(async () => {
    const { token } = await api('POST', '/tokens', { name: element('name').value });
    element('make').reset();
    element('token').textContent = token;
    element('token').hidden = false;
    await show();
  }),
);

element('logout').addEventListener(
  'click',
  attempt(async () => {
    await api('POST', '/logout');
    location.reload();
  }),
);

attempt(show)();
