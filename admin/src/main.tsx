import { takeSetupToken } from './api/client.ts';
import { Gate } from './app/gate.tsx';
import { renderPage } from './app/render-page.tsx';

takeSetupToken();
await renderPage(<Gate />);
