// The flow of direct uploads: announce the file, send its bytes where the answer says, complete it, and hand its id to a trigger.

/** The page is served at `/plugins/<id>/app/`: a copy of the plugin with another id needs no change here. */
const PLUGIN = location.pathname.split('/')[2];
const TRIGGERS = `/api/triggers/http/${PLUGIN}`;
const status = document.getElementById('status');
const progress = document.getElementById('progress');
const list = document.getElementById('files');

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
  const json = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(json?.error ?? `the host answered ${answer.status}`);
  return json;
}

// Not fetch: it tells nothing of how much has been sent.
function send({ upload_headers, upload_method, upload_url }, file) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(upload_method, upload_url);
    for (const [name, value] of Object.entries(upload_headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = event => {
      progress.value = event.loaded / event.total;
    };
    request.onload = () =>
      request.status < 300 ? resolve() : reject(new Error(`the upload was refused (${request.status})`));
    request.onerror = () => reject(new Error('the upload was interrupted'));
    request.send(file);
  });
}

function typeOf(mimeType) {
  const kind = /^(image|audio|video)\//.exec(mimeType)?.[1];
  return kind === 'image' ? 'photo' : (kind ?? 'document');
}

async function upload(file) {
  const mimeType = file.type || 'application/octet-stream';
  const announced = await ask('POST', '/api/files/init', {
    plugin_id: PLUGIN,
    name: file.name,
    mime_type: mimeType,
    size: file.size,
    file_type: typeOf(mimeType),
  });
  await send(announced, file);
  await ask('POST', `/api/files/${announced.file_id}/complete`);
  return announced.file_id;
}

async function row(file) {
  const { url } = await ask('GET', `${TRIGGERS}/files/${file.id}/link`);
  const item = document.createElement('li');
  if (file.file_type === 'photo') {
    const image = document.createElement('img');
    image.src = url;
    image.alt = '';
    item.append(image);
  }
  const link = document.createElement('a');
  link.href = url;
  link.target = '_blank';
  link.rel = 'noopener';
  link.textContent = `${file.name} (${file.size} bytes)`;
  const remove = document.createElement('button');
  remove.textContent = 'Delete';
  remove.setAttribute('aria-label', `Delete ${file.name}`);
  remove.onclick = () =>
    run(async () => {
      await ask('DELETE', `${TRIGGERS}/files/${file.id}`);
      await ask('DELETE', `/api/files/${file.id}`).catch(() => {});
      say(`${file.name} is deleted`);
    });
  item.append(link, remove);
  return item;
}

async function show() {
  const { files } = await ask('GET', `${TRIGGERS}/files`);
  list.replaceChildren(...(await Promise.all(files.map(row))));
}

async function run(work) {
  try {
    await work();
    await show();
  } catch (error) {
    say(error.message, true);
  }
}

document.getElementById('upload').addEventListener('submit', event => {
  event.preventDefault();
  const form = event.target;
  run(async () => {
    progress.hidden = false;
    const ids = [];
    for (const file of form.elements.file.files) {
      say(`${file.name} …`);
      ids.push(await upload(file));
    }
    await ask('POST', `${TRIGGERS}/files`, { file_ids: ids });
    form.reset();
    progress.hidden = true;
    say(ids.length === 1 ? 'One file was added' : `${ids.length} files were added`);
  });
});

run(async () => {});
