// The page on which a user links accounts of messengers: shows what is linked, and a one-time code for another one.
const language = navigator.language.startsWith('ru') ? 'ru' : 'en';
const TEXTS = {
  ru: {
    since: 'связан',
    unlink: 'Отвязать',
    none: 'Пока ничего не связано.',
    until: 'Код действует один раз, до',
    open: 'Открыть чат',
  },
  en: {
    since: 'linked',
    unlink: 'Unlink',
    none: 'Nothing is linked yet.',
    until: 'The code works once, until',
    open: 'Open the chat',
  },
}[language];
const NAMES = { TELEGRAM: 'Telegram', VK: 'VK' };
const element = id => document.getElementById(id);
document.documentElement.lang = language;
// Shows the server that a request comes from this page, and not from a page of a plugin.
const proof = document.querySelector('meta[name=page-proof]').content;
if (language === 'en') for (const e of document.querySelectorAll('[data-en]')) e.textContent = e.dataset.en;

async function api(method, path) {
  const response = await fetch(`/api/messengers${path}`, { method, headers: { 'x-page-proof': proof } });
  if (response.status === 401) {
    element('login').hidden = false;
    element('accounts').hidden = true;
  }
  const answer = response.status === 204 ? {} : await response.json();
  // The user has logged in elsewhere meanwhile: a new page has the new proof.
  if (answer.code === 'page_proof_required' && performance.getEntriesByType('navigation')[0]?.type !== 'reload')
    location.reload();
  if (!response.ok) throw new Error(answer.detail ?? `HTTP ${response.status}`);
  return answer;
}

/** A button that does something, and says what went wrong. */
function button(e, work) {
  e.addEventListener('click', async () => {
    element('message').textContent = '';
    try {
      await work();
    } catch (error) {
      element('message').textContent = error.message;
    }
  });
}

async function show() {
  const { items } = await api('GET', '/accounts');
  element('accounts').hidden = false;
  const rows = items.map(({ channel, linked_at }) => {
    const row = document.createElement('li');
    const since = new Date(linked_at).toLocaleString(language);
    const unlink = document.createElement('button');
    unlink.type = 'button';
    unlink.textContent = TEXTS.unlink;
    button(unlink, async () => {
      await api('DELETE', `/accounts/${channel}`);
      await show();
    });
    row.append(`${NAMES[channel] ?? channel}: ${TEXTS.since} ${since} `, unlink);
    return row;
  });
  if (rows.length === 0) rows.push(Object.assign(document.createElement('li'), { textContent: TEXTS.none }));
  element('linked').replaceChildren(...rows);
}

button(element('ask'), async () => {
  const { channels, code, expires_at } = await api('POST', '/link-code');
  element('text').textContent = `/link ${code}`;
  element('until').textContent = `${TEXTS.until} ${new Date(expires_at).toLocaleTimeString(language)}`;
  element('links').replaceChildren(
    ...channels.map(({ channel, url }) => {
      const row = document.createElement('li');
      if (url === null) row.textContent = NAMES[channel] ?? channel;
      else
        row.append(
          Object.assign(document.createElement('a'), {
            href: url,
            target: '_blank',
            rel: 'noopener',
            textContent: `${TEXTS.open}: ${NAMES[channel] ?? channel}`,
          }),
        );
      return row;
    }),
  );
  element('code').hidden = false;
});

// What is linked meanwhile is seen when the user comes back from the chat.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) show().catch(() => {});
});
show().catch(error => {
  if (element('login').hidden) element('message').textContent = error.message;
});
