import { renderPage } from '../app/render-page.tsx';
import { UserPage } from './user-page.tsx';

await renderPage(<UserPage />);
