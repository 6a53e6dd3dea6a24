// A file goes to the file store of the host first; then its id is handed to the plugin.

const PLUGIN = location.pathname.split('/')[2];
const TRIGGERS = `/api/triggers/http/${PLUGIN}`;
const FILE_BYTES_MAX = 8 * 1024 * 1024;
const status = document.getElementById('status');
const button = document.querySelector('#hand-in button');

function say(text, wrong = false) {
  status.textContent = text;
  status.classList.toggle('wrong', wrong);
}

async function ask(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.status === 401) {
    location.href = `/api/auth/idp/start?return_to=${encodeURIComponent(location.pathname)}`;
    throw new Error('log in first');
  }
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error ?? json.detail ?? `the host answered ${answer.status}`);
  return json;
}

async function upload(file) {
  const announced = await ask('POST', '/api/files/init', {
    plugin_id: PLUGIN,
    name: file.name,
    mime_type: file.type || 'application/octet-stream',
    size: file.size,
    file_type: 'document',
  });
  const { upload_headers: headers, upload_method: method, upload_url: url } = announced;
  const stored = await fetch(url, { method, headers, body: file });
  if (!stored.ok) throw new Error(`the upload was refused (${stored.status})`);
  await ask('POST', `/api/files/${announced.file_id}/complete`);
  return announced.file_id;
}

async function show() {
  const { handed_in, tasks } = await ask('GET', `${TRIGGERS}/mine`);
  const choice = document.getElementById('task');
  const chosen = choice.value;
  choice.replaceChildren(...tasks.map(task => new Option(task, task, false, task === chosen)));
  const rows = handed_in.map(({ at, name, task }) => {
    const row = document.createElement('li');
    row.textContent = `${task}: ${name}, ${new Date(at).toLocaleString()}`;
    return row;
  });
  document.getElementById('handed-in').replaceChildren(...rows);
}

async function run(work) {
  try {
    await work();
    await show();
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = false;
  }
}

document.getElementById('hand-in').addEventListener('submit', event => {
  event.preventDefault();
  const form = event.target;
  run(async () => {
    const [file] = form.elements.file.files;
    if (file.size > FILE_BYTES_MAX) throw new Error('A file may have 8 MB.');
    button.disabled = true;
    const task = form.elements.task.value;
    say(`${file.name} …`);
    await ask('POST', `${TRIGGERS}/tasks/${task}/files`, { file_id: await upload(file) });
    form.reset();
    say(`${file.name} is handed in for ${task}`);
  });
});

run(async () => {});
