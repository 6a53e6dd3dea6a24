// The questions come from the configuration of the plugin; the answers go to it in the same order.

const PLUGIN = location.pathname.split('/')[2];
const TRIGGERS = `/api/triggers/http/${PLUGIN}`;
const form = document.getElementById('survey');
const status = document.getElementById('status');

function say(text, wrong = false) {
  status.textContent = text;
  status.classList.toggle('wrong', wrong);
}

async function ask(method, path, body) {
  const answer = await fetch(TRIGGERS + path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.status === 401) {
    location.href = `/api/auth/idp/start?return_to=${encodeURIComponent(location.pathname)}`;
    throw new Error('log in first');
  }
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error ?? `the host answered ${answer.status}`);
  return json;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function fieldOf({ choices, text }, k) {
  const name = `q${k}`;
  if (choices.length === 0)
    return element(
      'p',
      {},
      element('label', { htmlFor: name }, text),
      element('br', {}),
      element('textarea', { id: name, name, rows: 3, maxLength: 2000 }),
    );
  const options = choices.map(value =>
    element('label', {}, element('input', { type: 'radio', name, value, required: true }), ` ${value} `),
  );
  return element('fieldset', {}, element('legend', {}, text), ...options);
}

async function show() {
  const { answered, questions, title } = await ask('GET', '/questions');
  document.title = title;
  document.getElementById('title').textContent = title;
  document.getElementById('questions').replaceChildren(...questions.map(fieldOf));
  form.hidden = answered;
  if (answered) say('You have answered. Thank you.');
  return questions;
}

async function run(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message, true);
    return [];
  }
}

const questions = await run(show);

form.addEventListener('submit', event => {
  event.preventDefault();
  run(async () => {
    const given = new FormData(form);
    await ask('POST', '/answers', { answers: questions.map((_, k) => given.get(`q${k}`) ?? '') });
    await show();
  });
});
